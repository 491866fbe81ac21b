package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.streaming.OutputMode;
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
    private static BiFunction python;

    public void answerBy(BiFunction python) {
        DefaultSource.python = python;
    }

    @Override
    public BaseRelation createRelation(SQLContext context, Map parameters) {
        Object table = answer(request("read", parameters), context.sparkSession(), null);
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
        ObjectNode request = request("save", parameters).put("mode", mode.name());
        return (BaseRelation) answer(request, context.sparkSession(), rows);
    }

    @Override
    public Sink createSink(
            SQLContext context, Map parameters, SEQ partitionColumns, OutputMode mode) {
        ArrayNode columns = new ObjectMapper().createArrayNode();
        for (int at = 0; at < partitionColumns.size(); at++)
            columns.add((String) partitionColumns.apply(at));
        TableSink sink =
            new TableSink(context.sparkSession(), mode.toString(), columns.toString());
        sink.answerBy(
            (BiFunction) answer(request("sink", parameters), context.sparkSession(), sink));
        return sink;
    }

    @Override
    public Tuple2 sourceSchema(
            SQLContext context, Option schema, String provider, Map parameters) {
        // Spark gives a table of a catalog the columns of its entry there, which has none.
        if (schema.isDefined() && !parameters.contains("catalog"))
            throw new IllegalArgumentException("a table has its own columns: leave out schema(…)");
        return new Tuple2("windrow", stream(context, parameters).schema());
    }

    @Override
    public Source createSource(
            SQLContext context, String metadata, Option schema, String provider, Map parameters) {
        return stream(context, parameters);
    }

    private static TableStream stream(SQLContext context, Map parameters) {
        Object answers = answer(request("stream", parameters), context.sparkSession(), null);
        return new TableStream(context.sparkSession(), (BiFunction) answers);
    }

    private static Object answer(ObjectNode request, SparkSession session, Object given) {
        Object[] objects = given == null ? new Object[] {session} : new Object[] {session, given};
        Object answer = python.apply(request.toString(), objects);
        // This is the only exception of which PySpark shows nothing but the message.
        if (answer instanceof String) throw new IllegalArgumentException((String) answer);
        return answer;
    }

    private static ObjectNode request(String use, Map parameters) {
        ObjectNode request = new ObjectMapper().createObjectNode().put("use", use);
        ObjectNode options = request.putObject("options");
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
        return request;
    }
}
