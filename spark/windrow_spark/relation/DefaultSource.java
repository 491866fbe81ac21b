package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.streaming.OutputMode;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/**
 * The class that Spark loads for the format `windrow`. No stream reads tables; without
 * these methods, Spark would refuse that without saying what to do instead.
 */
public final class DefaultSource implements
        RelationProvider, CreatableRelationProvider, StreamSinkProvider, StreamSourceProvider {
    private static BiFunction tables;
    private static BiFunction sinks;
    private static BiFunction writes;
    private static BiFunction refusals;

    public void answerBy(
            BiFunction tables, BiFunction sinks, BiFunction writes, BiFunction refusals) {
        DefaultSource.tables = tables;
        DefaultSource.sinks = sinks;
        DefaultSource.writes = writes;
        DefaultSource.refusals = refusals;
    }

    public BaseRelation createRelation(SQLContext context, Map parameters) {
        Object table = tables.apply(context.sparkSession(), text(parameters));
        // This is the only exception of which PySpark shows nothing but the message.
        if (table instanceof String) throw new IllegalArgumentException((String) table);
        if (!parameters.contains("catalog")) return (BaseRelation) table;
        // Spark gives a relation of a catalog other options where it has not those of its table.
        HadoopFsRelation files = (HadoopFsRelation) table;
        return new HadoopFsRelation(
            files.location(), files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), parameters, files.sparkSession());
    }

    public BaseRelation createRelation(
            SQLContext context, SaveMode mode, Map parameters, Dataset rows) {
        Object table = writes.apply(
            text(parameters), new Object[] {context.sparkSession(), mode.name(), rows});
        if (table instanceof String) throw new IllegalArgumentException((String) table);
        return (BaseRelation) table;
    }

    public Sink createSink(
            SQLContext context, Map parameters, SEQ partitionColumns, OutputMode mode) {
        ArrayNode columns = new ObjectMapper().createArrayNode();
        for (int at = 0; at < partitionColumns.size(); at++)
            columns.add((String) partitionColumns.apply(at));
        TableSink sink =
            new TableSink(context.sparkSession(), mode.toString(), columns.toString());
        Object batches = sinks.apply(sink, text(parameters));
        if (batches instanceof String) throw new IllegalArgumentException((String) batches);
        sink.answerBy((BiFunction) batches);
        return sink;
    }

    public Tuple2 sourceSchema(
            SQLContext context, Option schema, String provider, Map parameters) {
        throw refusal("readStream", parameters);
    }

    public Source createSource(
            SQLContext context, String metadata, Option schema, String provider, Map parameters) {
        throw refusal("readStream", parameters);
    }

    private static IllegalArgumentException refusal(String use, Map parameters) {
        return new IllegalArgumentException((String) refusals.apply(use, text(parameters)));
    }

    private static String text(Map parameters) {
        ObjectNode options = new ObjectMapper().createObjectNode();
        Iterator all = parameters.iterator();
        while (all.hasNext()) {
            Tuple2 option = (Tuple2) all.next();
            options.put((String) option._1(), (String) option._2());
        }
        return options.toString();
    }
}
