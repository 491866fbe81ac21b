package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/**
 * The class that Spark loads for the format `windrow`: it reads and writes tables, in streams too.
 */
public final class DefaultSource implements
        RelationProvider, CreatableRelationProvider, StreamSinkProvider, StreamSourceProvider {
    private static BiFunction tables;
    private static BiFunction sinks;
    private static BiFunction streams;
    private static BiFunction writes;

    public void answerBy(
            BiFunction tables, BiFunction sinks, BiFunction streams, BiFunction writes) {
        DefaultSource.tables = tables;
        DefaultSource.sinks = sinks;
        DefaultSource.streams = streams;
        DefaultSource.writes = writes;
    }

    @Override
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

    @Override
    public BaseRelation createRelation(
            SQLContext context, SaveMode mode, Map parameters, Dataset rows) {
        Object table = writes.apply(
            text(parameters), new Object[] {context.sparkSession(), mode.name(), rows});
        if (table instanceof String) throw new IllegalArgumentException((String) table);
        return (BaseRelation) table;
    }

    @Override
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

    @Override
    public Tuple2 sourceSchema(
            SQLContext context, Option schema, String provider, Map parameters) {
        // Spark gives a table of a catalog the columns of its entry there, which has none.
        if (schema.isDefined() && !parameters.contains("catalog"))
            throw new IllegalArgumentException("a table has its own columns: leave out schema(…)");
        return new Tuple2("windrow", columns(stream(context, parameters)));
    }

    @Override
    public Source createSource(
            SQLContext context, String metadata, Option schema, String provider, Map parameters) {
        BiFunction answers = stream(context, parameters);
        return new TableStream(context.sparkSession(), columns(answers), answers);
    }

    private static BiFunction stream(SQLContext context, Map parameters) {
        Object answers = streams.apply(context.sparkSession(), text(parameters));
        if (answers instanceof String) throw new IllegalArgumentException((String) answers);
        return (BiFunction) answers;
    }

    private static StructType columns(BiFunction answers) {
        Object[] columns = (Object[]) answers.apply("columns", new Object[] {null, null, null});
        return (StructType) DataType.fromJson((String) columns[0]);
    }

    private static String text(Map parameters) {
        ObjectNode options = new ObjectMapper().createObjectNode();
        Map named = parameters;
        if (named instanceof CaseInsensitiveMap) named = ((CaseInsensitiveMap) named).originalMap();
        Iterator all = named.iterator();
        while (all.hasNext()) {
            Tuple2 option = (Tuple2) all.next();
            String name = (String) option._1();
            // Options of Parquet's writer may name columns.
            String lower = name.toLowerCase(Locale.ROOT);
            options.put(lower.startsWith("parquet.") ? name : lower, (String) option._2());
        }
        return options.toString();
    }
}
